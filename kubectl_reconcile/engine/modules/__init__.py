"""Domain modules in use: called within time limits, watched for impurity, their looks and actions carried out."""
