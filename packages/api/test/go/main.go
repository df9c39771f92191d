// Calls a Caisson socket through containerd's own ttRPC library and prints what came back.
// Usage: ttrpc SOCKET IMAGE, where IMAGE is a descriptor set made by `buf build`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type caller struct {
	client *ttrpc.Client
	files  *protoregistry.Files
}

type outcome struct {
	Name     string            `json:"name"`
	Messages []json.RawMessage `json:"messages"`
	Code     string            `json:"code,omitempty"`
	Message  string            `json:"message,omitempty"`
	Reason   string            `json:"reason,omitempty"`
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(socket, image string) error {
	files, err := load(image)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	c := caller{client: ttrpc.NewClient(conn), files: files}
	defer c.client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ctx = ttrpc.WithMetadata(ctx, ttrpc.MD{"traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}})
	short, cancelShort := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancelShort()

	box := `"sandbox_id": "sb_0123456789abcdef"`
	both := box + `, "process_id": "p1"`
	outcomes := []outcome{
		c.unary(ctx, "unary", "SystemService", "GetHealth", `{}`),
		c.unary(ctx, "error", "SandboxService", "GetSandbox", `{"sandbox_id": "sb_none"}`),
		c.unary(ctx, "unknown method", "SystemService", "Nope", ``),
		c.stream(ctx, "server stream", "ProcessService", "AttachProcess", true, `{`+both+`}`),
		c.stream(ctx, "error in a stream", "ProcessService", "AttachProcess", true, `{"sandbox_id": "sb_none", "process_id": "p1"}`),
		c.stream(ctx, "client stream", "FileService", "WriteFile", false, `{`+box+`, "path": "f"}`, `{"data": "aGVs"}`, `{"data": "bG8="}`),
		c.unary(short, "deadline", "ProcessService", "WaitProcess", `{`+box+`, "process_id": "p999"}`),
	}
	return json.NewEncoder(os.Stdout).Encode(outcomes)
}

func load(image string) (*protoregistry.Files, error) {
	bytes, err := os.ReadFile(image)
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(bytes, &set); err != nil {
		return nil, err
	}
	return protodesc.NewFiles(&set)
}

func (c caller) method(service, method string) protoreflect.MethodDescriptor {
	found, err := c.files.FindDescriptorByName(protoreflect.FullName("caisson.v1." + service))
	if err != nil {
		panic(err)
	}
	return found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
}

func message(desc protoreflect.MessageDescriptor, text string) *dynamicpb.Message {
	made := dynamicpb.NewMessage(desc)
	if text != "" {
		if err := protojson.Unmarshal([]byte(text), made); err != nil {
			panic(err)
		}
	}
	return made
}

func (c caller) unary(ctx context.Context, name, service, method, request string) outcome {
	desc := c.method(service, method)
	if desc == nil {
		desc = c.method("SystemService", "GetHealth")
	}
	answer := message(desc.Output(), "")
	err := c.client.Call(ctx, "caisson.v1."+service, method, message(desc.Input(), request), answer)
	if err != nil {
		return c.failed(outcome{Name: name}, err)
	}
	return outcome{Name: name, Messages: []json.RawMessage{text(answer)}}
}

func (c caller) stream(ctx context.Context, name, service, method string, server bool, requests ...string) outcome {
	desc := c.method(service, method)
	result := outcome{Name: name}
	var first interface{}
	if server {
		first = message(desc.Input(), requests[0])
	}
	stream, err := c.client.NewStream(ctx, &ttrpc.StreamDesc{StreamingClient: !server, StreamingServer: server}, "caisson.v1."+service, method, first)
	if err != nil {
		return c.failed(result, err)
	}
	if !server {
		for _, request := range requests {
			if err := stream.SendMsg(message(desc.Input(), request)); err != nil {
				return c.failed(result, err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			return c.failed(result, err)
		}
	}
	for {
		answer := message(desc.Output(), "")
		err := stream.RecvMsg(answer)
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			return c.failed(result, err)
		}
		result.Messages = append(result.Messages, text(answer))
		if !server {
			return result
		}
	}
}

func (c caller) failed(result outcome, err error) outcome {
	if errors.Is(err, context.DeadlineExceeded) {
		result.Code = "DeadlineExceeded"
		return result
	}
	st, _ := status.FromError(err)
	result.Code, result.Message = st.Code().String(), st.Message()
	for _, detail := range st.Proto().GetDetails() {
		desc, err := c.files.FindDescriptorByName(detail.MessageName())
		if err != nil {
			continue
		}
		info := dynamicpb.NewMessage(desc.(protoreflect.MessageDescriptor))
		if err := proto.Unmarshal(detail.Value, info); err == nil {
			result.Reason = info.Get(info.Descriptor().Fields().ByName("reason")).String()
		}
	}
	return result
}

func text(m proto.Message) json.RawMessage {
	bytes, err := protojson.Marshal(m)
	if err != nil {
		panic(err)
	}
	return bytes
}
