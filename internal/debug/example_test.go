package debug_test

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/softrnic/softrnic/internal/debug"
)

// lamp is a device whose only state is whether it is on.
type lamp struct{ On bool }

func (l lamp) Stat() any                 { return l }
func (l lamp) QP(uint32) (any, bool)     { return nil, false }
func (l lamp) StartCapture(string) error { return nil }
func (l lamp) StopCapture() error        { return nil }

func Example() {
	server, err := debug.Serve(lamp{On: true}, "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	res, err := http.Get("http://" + server.Addr() + "/stat")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	var l lamp
	fmt.Println(json.NewDecoder(res.Body).Decode(&l), l.On)

	_, err = debug.Serve(lamp{}, "192.0.2.1:9479")
	fmt.Println(err != nil) // other processes could read it
	// Output:
	// <nil> true
	// true
}
