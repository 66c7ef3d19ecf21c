package sdp_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		peerProcess()
	}
	goleak.VerifyTestMain(m)
}
