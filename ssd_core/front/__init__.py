"""What every host needs between a user and the engine. Knows no user interface."""
