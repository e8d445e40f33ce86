"""What every host needs between a user and the engine; knows no user interface."""
