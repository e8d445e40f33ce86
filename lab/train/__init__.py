"""Training of postcard: its tokenizer, backbone, samplers and classifier."""
