"""The manager's part: installs, starts, renews and removes the engines that run on this machine."""
