package bed

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pncv1 "pncd/api/pnc/v1"
)

// Node is a pncd of the lab, seen through its gRPC socket.
type Node struct {
	Name         string // in the topology
	Capabilities pncv1.CapabilityServiceClient
	Flows        pncv1.FlowServiceClient
	Records      pncv1.RecordServiceClient
	Control      pncv1.NodeServiceClient
	ISIS         pncv1.IsisServiceClient
	Reports      pncv1.CongestionServiceClient

	conn *grpc.ClientConn
}

// dialPatience bounds how long a pncd may take to answer after its start.
const dialPatience = 15 * time.Second

// dial connects to a node's pncd and waits until it answers.
func (b *Bed) dial(ctx context.Context, name string) (*Node, error) {
	socket := filepath.Join(b.RunDir(name), "pncd", "pncd.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	n := &Node{
		Name: name, conn: conn,
		Capabilities: pncv1.NewCapabilityServiceClient(conn),
		Flows:        pncv1.NewFlowServiceClient(conn),
		Records:      pncv1.NewRecordServiceClient(conn),
		Control:      pncv1.NewNodeServiceClient(conn),
		ISIS:         pncv1.NewIsisServiceClient(conn),
		Reports:      pncv1.NewCongestionServiceClient(conn),
	}
	err = b.Wait(ctx, dialPatience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := n.Status(ctx)
		if err != nil {
			conn.ResetConnectBackoff()
		}
		return err
	})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("node %s: pncd does not answer: %w", name, err)
	}
	return n, nil
}

// Close closes the connection.
func (n *Node) Close() error { return n.conn.Close() }

// Status reads the node's status.
func (n *Node) Status(ctx context.Context) (*pncv1.GetStatusResponse, error) {
	return n.Control.GetStatus(ctx, &pncv1.GetStatusRequest{})
}

// Counter reads one exact counter; zero when the node has none of that name.
func (n *Node) Counter(ctx context.Context, part, name string) (uint64, error) {
	r, err := n.Records.ListCounters(ctx, &pncv1.ListCountersRequest{})
	if err != nil {
		return 0, err
	}
	for _, c := range r.GetCounters() {
		if c.GetPart() == part && c.GetName() == name {
			return c.GetValue(), nil
		}
	}
	return 0, nil
}
