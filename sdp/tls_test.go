package sdp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// certificate returns one for an address, and the configurations of both sides.
func certificate(t *testing.T, host net.IP) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sdp"}, IPAddresses: []net.IP{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool, ServerName: host.String()}
}

// TestTLS sends in both directions at once. Its end is that of TLS: close_notify arrives as the
// last record, and is not mistaken for a truncation.
func TestTLS(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		e := newEnds(t, rnic.Options{}, o)
		a, b := e.dial(t)
		sc, cc := certificate(t, e.addr().Addr().AsSlice())
		server, client := tls.Server(b, sc), tls.Client(a, cc)
		require.NoError(t, a.SetDeadline(time.Now().Add(hang)))
		require.NoError(t, b.SetDeadline(time.Now().Add(hang)))
		var both sync.WaitGroup
		for i, c := range []*tls.Conn{server, client} {
			both.Go(func() {
				var reader sync.WaitGroup
				reader.Go(func() { checkStream(t, c, int64(1-i), 8<<20) })
				if _, err := io.Copy(c, stream(int64(i), 8<<20)); err != nil {
					t.Error(err)
				}
				if err := c.CloseWrite(); err != nil {
					t.Error(err)
				}
				reader.Wait()
				if err := c.Close(); err != nil { // now: with RDMA flow control the last data is sent in a call
					t.Error(err)
				}
			})
		}
		both.Wait()
	})
}

// TestHTTP2 uses TLS, with many requests on one connection.
func TestHTTP2(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	sc, cc := certificate(t, e.addr().Addr().AsSlice())
	server := &http.Server{TLSConfig: sc, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("a request by %v", r.Proto)
		}
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(e.l, "", "") }()
	transport := &http.Transport{DialContext: e.dialContext, TLSClientConfig: cc, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r, err := client.Post("https://"+e.l.Addr().String()+"/", "", stream(int64(i), 300<<10))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			checkStream(t, r.Body, int64(i), 300<<10)
		})
	}
	all.Wait()
	transport.CloseIdleConnections()
	require.NoError(t, server.Shutdown(t.Context()))
	require.ErrorIs(t, <-ended, http.ErrServerClosed)
}
