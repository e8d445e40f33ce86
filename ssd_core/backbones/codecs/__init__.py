"""Picture codecs: tokens to pixels and back."""
