"""Finding, loading, downloading, converting, quantising and sizing weights."""
