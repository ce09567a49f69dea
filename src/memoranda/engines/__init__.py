"""The provider contract and the engines that keep it. Nothing here knows who may do what; that is decided above."""
