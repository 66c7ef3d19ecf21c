package main

// The linker puts the function of signals.c before each exported function.

// #cgo LDFLAGS: -Wl,--wrap=_cgo_wait_runtime_init_done
import "C"

// go_enter_thread makes the runtime know the calling thread.
//
//export go_enter_thread
func go_enter_thread() {}
