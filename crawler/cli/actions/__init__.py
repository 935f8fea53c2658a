"""What the commands do: ask the rooms, and print what they give. A file for each, named as the command."""
