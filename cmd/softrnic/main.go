package main

import (
	"context"
	"os"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
)

func main() {
	ctx, stop := cmdline.NotifyContext(context.Background())
	status := newApp(os.Stdout, os.Stderr).runCommand(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
