"""Where effort goes next: the plan tree and the policies that walk it."""
