"""Who goes next, and who has how much, where many want the same: turns, shares and budgets of tenants. Pure."""
