"""Prompts of real backbones: tokenizers, classes, text encoders."""
