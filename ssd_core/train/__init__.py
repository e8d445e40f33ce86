"""The recipe of the bundled backbone: tokenizer, backbone, self-distillation, draft heads."""
