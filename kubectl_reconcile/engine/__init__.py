"""The impure middle: gathers what the planner needs, writes what it decided, and keeps doing so."""
