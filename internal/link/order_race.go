//go:build race

package link

import "sync/atomic"

// What happens before a packet is sent happens before it is received. The race
// detector cannot see that when both ends are in one program and the packet
// goes through the kernel; package syscall tells it so of Read and Write in the
// same way.
var order atomic.Uint32

// sending stands before packets go to the system.
func sending() { order.Add(1) }

// received stands after packets have come from the system.
func received() { order.Load() }
