"""The language of `postcard`: its closed world, captions, prompts in two languages, completion."""
