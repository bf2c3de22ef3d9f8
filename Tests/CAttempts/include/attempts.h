#pragma once
/// Tries what a program without powers must not be able to do; each attempt is one system call, made without the C library.
/// `name` is set to what was tried. The answer is 0 when it worked, else the errno; -1 behind the last attempt.
int attempt(int index, int parent, const char **name);
