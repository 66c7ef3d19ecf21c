package main

// The linker puts functions of signals.c before each exported function and before the threads of the runtime.

// #cgo LDFLAGS: -Wl,--wrap=_cgo_wait_runtime_init_done -Wl,--wrap=pthread_create
import "C"

// go_enter_thread makes the runtime know the calling thread.
//
//export go_enter_thread
func go_enter_thread() {}
