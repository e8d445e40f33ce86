"""Helpers that tests share: mocks, stubs, tiny checkpoints, servers."""
