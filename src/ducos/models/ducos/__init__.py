"""ducos."""
