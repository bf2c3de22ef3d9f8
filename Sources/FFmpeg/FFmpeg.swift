// FFmpeg
