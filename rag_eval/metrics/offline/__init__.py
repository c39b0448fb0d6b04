"""What the offline forms of the metrics are made of: arithmetic over words. No model, no network, no cost."""
