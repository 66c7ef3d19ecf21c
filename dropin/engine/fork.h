// Sockets of the engine in a child by fork.
#ifndef FORK_H
#define FORK_H

#include <stdint.h>

// note_device_address makes children by fork close the sockets that are bound to the address of a device, an IPv6 or
// IPv4-mapped one, and to the abstract names of softrnic.
void note_device_address(const uint8_t ip[16], uint16_t port);

#endif
