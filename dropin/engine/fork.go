package main

/*
#include "fork.h"
*/
import "C"

import (
	"unsafe"

	"github.com/softrnic/softrnic/rnic"
)

// closeInChildren makes children by fork close the sockets of a device: they cannot use it, and
// would hold its address after this process has ended.
func closeInChildren(adapter *rnic.Device) {
	at := adapter.Addr()
	ip := at.Addr().As16()
	C.note_device_address((*C.uint8_t)(unsafe.Pointer(&ip[0])), C.uint16_t(at.Port()))
}
