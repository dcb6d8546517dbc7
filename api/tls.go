package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// TLSConfig names the files of the server's identity. Files are read again for each new connection, so
// that a renewed certificate needs no restart; while new files cannot be read, the last good ones stay in
// use.
type TLSConfig struct {
	CertFile string // PEM, the server's certificate and its intermediates
	KeyFile  string // PEM
	// ClientCAFile, when set, asks clients for a certificate that one of these CAs signed (mutual TLS).
	ClientCAFile string
}

// server reads the files once, so that a mistake shows at the start.
func (c *TLSConfig) server() (*tls.Config, error) {
	if c.CertFile == "" || c.KeyFile == "" {
		return nil, errors.New("api.tls: cert and key are required")
	}
	good, err := c.load()
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Config]
	last.Store(good)
	outer := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if fresh, err := c.load(); err == nil {
			last.Store(fresh)
		}
		return last.Load(), nil
	}
	return outer, nil
}

func (c *TLSConfig) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("api.tls: cert %s with key %s: %w", c.CertFile, c.KeyFile, err)
	}
	tc := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2"}, // gRPC clients insist on ALPN (RFC 7301)
		Certificates: []tls.Certificate{cert},
	}
	if c.ClientCAFile == "" {
		return tc, nil
	}
	pem, err := os.ReadFile(c.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("api.tls.client_ca: %w", err)
	}
	tc.ClientCAs = x509.NewCertPool()
	if !tc.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("api.tls.client_ca: %s holds no PEM certificate", c.ClientCAFile)
	}
	tc.ClientAuth = tls.RequireAndVerifyClientCert
	return tc, nil
}
