"""Trains drafters that read the hidden states of a target: docs/training.md."""
