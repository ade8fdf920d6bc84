//! Control plane: name resolution, control socket, status.
