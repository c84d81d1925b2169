"""The page and its JSON: what a browser asks for, answered with the rights of whoever asks. No decisions live here."""
