package acp_test

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// ctx ends long after everything should be over.
var ctx context.Context

func TestMain(m *testing.M) {
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Second)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cancel()
		os.Exit(code)
	}))
}
