"""The command line: click commands and what they print. No decisions live here."""
