package rnicdebug_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/rnic/rnicdebug"
)

func Example() {
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	server, err := rnicdebug.Serve(dev, "127.0.0.1:0") // or FromEnvironment(dev)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	res, err := http.Get("http://" + server.Addr() + "/metrics")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode, strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain"))

	_, err = rnicdebug.Serve(dev, "192.0.2.1:9479")
	fmt.Println(strings.Contains(err.Error(), "192.0.2.1 is not a loopback address"))
	// Output:
	// 200 true
	// true
}
