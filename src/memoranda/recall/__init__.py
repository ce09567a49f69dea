"""From a question to a budgeted view with evidence."""
