package link

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// LowerTimerSlack makes timeouts of the calling thread, such as that of Wait,
// as exact as the system's timers: Linux otherwise delays them by up to 50 us
// to merge wake-ups. The caller has locked its goroutine to the thread.
func LowerTimerSlack() error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("link: prctl(PR_SET_TIMERSLACK): %w", err)
	}
	return nil
}
