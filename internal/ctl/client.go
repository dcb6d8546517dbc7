package ctl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"pncd/api"
)

// maxAnswer is the largest answer accepted: a listing of 100,000 rows fits.
const maxAnswer = 128 << 20

// client is a connection to pncd. It connects with the first call.
type client struct {
	network, address string
	conn             *grpc.ClientConn
	dialError        atomic.Pointer[error] // the last error of connecting, which gRPC flattens to text
}

func (c *client) close() { _ = c.conn.Close() }

// target shows the address as the flags take it.
func (c *client) target() string {
	if c.network == "unix" {
		return "unix://" + c.address
	}
	return c.address
}

// connect gives the run's client.
func (a *app) connect() (*client, error) {
	if a.client != nil {
		return a.client, nil
	}
	from, text := "--address", a.address
	switch {
	case a.socket != "":
		path := strings.TrimPrefix(strings.TrimPrefix(a.socket, "unix:"), "//") // as --address has it
		from, text = "--socket", "unix:"+path
	case text == "":
		from, text = envAddress, a.env.Getenv(envAddress)
	}
	network, address, err := api.SplitAddress(text)
	if err != nil {
		return nil, usagef("%s: %w", from, err)
	}
	creds := insecure.NewCredentials()
	if network == "tcp" {
		if creds, err = a.tls(); err != nil {
			return nil, err
		}
	} else if a.tlsCA != "" || a.tlsCert != "" || a.tlsName != "" {
		return nil, usagef("--tls-ca, --tls-cert, --tls-key and --tls-server-name are for a host:port address; %s is a unix socket", address)
	}
	c := &client{network: network, address: address}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			c.dialError.Store(&err)
		}
		return conn, err
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	}
	if network == "unix" {
		options = append(options, grpc.WithAuthority("localhost")) // a path is no authority (RFC 3986 section 3.2)
	}
	// passthrough: the name is resolved by the dialer, and no proxy of the environment is asked.
	c.conn, err = grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return nil, usagef("%s %q: %w", from, text, err)
	}
	a.client = c
	return c, nil
}

func (a *app) tls() (credentials.TransportCredentials, error) {
	tc := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.tlsName}
	if a.tlsCA != "" {
		pem, err := os.ReadFile(a.tlsCA)
		if err != nil {
			return nil, usagef("--tls-ca: %w", err)
		}
		tc.RootCAs = x509.NewCertPool()
		if !tc.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca: %s holds no PEM certificate", a.tlsCA)
		}
	}
	if a.tlsCert != "" {
		cert, err := tls.LoadX509KeyPair(a.tlsCert, a.tlsKey)
		if err != nil {
			return nil, usagef("--tls-cert %s with --tls-key %s: %w", a.tlsCert, a.tlsKey, err)
		}
		tc.Certificates = []tls.Certificate{cert}
	}
	return credentials.NewTLS(tc), nil
}

// ask connects and makes one call within the timeout, as in
//
//	ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.GetStatus, &pncv1.GetStatusRequest{})
func ask[S, Q, R any](ctx context.Context, a *app, service func(grpc.ClientConnInterface) S, method func(S, context.Context, Q, ...grpc.CallOption) (R, error), req Q) (R, error) {
	c, err := a.connect()
	if err != nil {
		var none R
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return method(service(c.conn), ctx, req)
}
