"""The parts of a tiny random GLM-Image pipeline that paint pixels, saved as published."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from support.tiny_glm_image import CODES


def glm_pipeline(folder: Path) -> Path:
    """Transformer, text encoder, tokenizer, VAE and scheduler; no autoregressive part."""
    import diffusers
    import transformers

    torch.manual_seed(0)
    transformer = diffusers.GlmImageTransformer2DModel(
        patch_size=2, in_channels=4, out_channels=4, num_layers=1, attention_head_dim=8,
        num_attention_heads=2, text_embed_dim=32, time_embed_dim=16, condition_dim=8,
        prior_vq_quantizer_codebook_size=CODES)
    vae = diffusers.AutoencoderKL(
        block_out_channels=(4, 4, 4, 4), in_channels=3, out_channels=3, latent_channels=4,
        norm_num_groups=2, down_block_types=("DownEncoderBlock2D",) * 4, sample_size=64,
        up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=1,
        latents_mean=[0.0] * 4, latents_std=[1.0] * 4)
    encoder = transformers.T5EncoderModel(transformers.T5Config(
        vocab_size=384, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
        feed_forward_proj="gated-gelu"))
    parts = {"transformer": transformer, "vae": vae, "text_encoder": encoder,
             "tokenizer": transformers.ByT5Tokenizer(),
             "scheduler": diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True)}
    for name, part in parts.items():
        part.save_pretrained(folder / name)
    index = {name: ["transformers" if type(part).__module__.startswith("transformers")
                    else "diffusers", type(part).__name__] for name, part in parts.items()}
    index |= {"vision_language_encoder": ["transformers", "GlmImageForConditionalGeneration"],
              "processor": ["transformers", "GlmImageProcessor"]}
    (folder / "model_index.json").write_text(json.dumps(
        {"_class_name": "GlmImagePipeline", "_diffusers_version": "0.42.1", **index}))
    return folder
