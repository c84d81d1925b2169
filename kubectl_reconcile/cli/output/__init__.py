"""How things look: plans, results, problems and tables as text, YAML, JSON and Markdown. Decides nothing."""
