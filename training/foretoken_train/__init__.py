"""Trains drafters that read the hidden states of a target: docs/do/train_a_drafter.md."""
