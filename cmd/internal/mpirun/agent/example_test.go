//go:build unix

package agent_test

import (
	"bytes"
	"fmt"
	"io"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/agent"
	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
)

// A launcher starts one rank, waits for its exit and ends the agent.
func Example() {
	in, launcher := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error)
	go func() {
		done <- agent.Run(in, out)
	}()
	w, r := frame.NewWriter(launcher), frame.NewReader(answers)
	var noise bytes.Buffer
	fmt.Println("greeted:", r.ReadHello(&noise))
	kind, _, _, err := r.Next()
	fmt.Println("arrived:", kind == frame.HostReady, err)
	w.WriteJSON(frame.Start, 0, frame.Spec{Size: 1, Ranks: []frame.Rank{{Args: []string{"sh", "-c", "exit $PMI_SIZE"}}}})
	for {
		kind, rank, b, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		switch kind {
		case frame.Exited:
			fmt.Println("rank", rank, string(b))
			go w.WriteJSON(frame.Stop, 0, frame.StopRequest{})
		case frame.Finished:
			fmt.Println("bye:", <-done)
			launcher.Close()
			return
		}
	}
	// Output:
	// greeted: <nil>
	// arrived: true <nil>
	// rank 0 {"Status":1,"Signal":0,"Name":"","Core":false}
	// bye: <nil>
}
