"""Prompts of downloaded backbones: tokenizers, classes and text encoders."""
