// Files
