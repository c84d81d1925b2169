"""Domain modules at work: called within time limits, watched for impurity, their looks and actions carried out."""
