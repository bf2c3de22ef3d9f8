// Thumbs
