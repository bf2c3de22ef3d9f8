// Transcode
