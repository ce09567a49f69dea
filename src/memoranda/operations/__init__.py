"""What can be done with a memory, each thing written once; every face and every guard goes through here."""
