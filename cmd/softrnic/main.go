package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one ends the process
	status := newApp(os.Stdout, os.Stderr).main(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
