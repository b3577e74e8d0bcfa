"""The paper's experiments: configuration in, rows of results out."""
