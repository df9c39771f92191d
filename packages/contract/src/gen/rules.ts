// Generated from spec/rules.json.

export const rules = {
  "contract": {
    "name": "v1",
    "revision": 1
  },
  "paths": {
    "max_bytes": 4096,
    "max_segment_bytes": 255
  },
  "sizes": {
    "message_bytes": 4194304,
    "file_transfer_bytes": 268435456,
    "exec_output_bytes": 16777216,
    "kept_output_bytes": 268435456,
    "listing_bytes": 8388608,
    "image_bytes": 34359738368,
    "image_files": 2000000,
    "snapshot_bytes": 34359738368,
    "error_body_bytes": 512,
    "request_body_bytes": 4194304,
    "labels": 64,
    "page_size_default": 100,
    "page_size_max": 1000,
    "json_depth": 64
  },
  "times": {
    "exec_grace_ms": 2000,
    "idle_ttl_s": 3600,
    "max_age_s": 86400,
    "heartbeat_ms": 5000,
    "heartbeat_missed": 3,
    "idempotency_window_s": 86400,
    "kept_after_end_s": 86400
  },
  "link": {
    "version": 1,
    "frame_bytes": 1048576,
    "window_bytes": 1048576,
    "connection_window_bytes": 262144,
    "connections": 1024,
    "connections_queued_bytes": 67108864
  },
  "network": {
    "proxy_port": 14128,
    "transparent_port": 14129,
    "dns_names": 16384
  },
  "retry": {
    "attempts": 6,
    "waits_ms": [
      0,
      500,
      1000,
      2000,
      4000
    ],
    "jitter": 0.25,
    "wait_cap_ms": 8000,
    "attempt_timeout_ms": 60000,
    "total_timeout_ms": 180000,
    "attempt_header": "caisson-attempt",
    "statuses": [
      "UNAVAILABLE"
    ],
    "only_with_key": [
      "CreateSandbox",
      "DeleteSandbox",
      "Exec",
      "StartProcess",
      "Run",
      "RunStream",
      "CloseSession",
      "UpdateNetwork",
      "SignalProcess",
      "WriteFile",
      "MakeDirectory",
      "MoveFile",
      "RemoveFile",
      "UploadArchive",
      "ApplyWorkspace",
      "UndoApply",
      "RebaseWorkspace",
      "DiscardWorkspace",
      "ImportImage",
      "ImportSnapshot",
      "RemoveImage",
      "CollectImages",
      "CreateKey",
      "RevokeKey",
      "DecideApproval",
      "SetSecret",
      "RemoveSecret"
    ]
  },
  "telemetry": {
    "spans": {
      "rpc": "caisson.rpc",
      "create": "caisson.sandbox.create",
      "exec": "caisson.process.exec",
      "file": "caisson.file"
    },
    "attributes": [
      "sandbox.id",
      "sandbox.tier",
      "sandbox.driver",
      "sandbox.process.id",
      "sandbox.command.executable",
      "sandbox.exit_code",
      "sandbox.file.path",
      "sandbox.file.size",
      "sandbox.request_id",
      "sandbox.truncated",
      "sandbox.retry.attempt"
    ],
    "never_metric_labels": [
      "sandbox.id",
      "sandbox.process.id",
      "sandbox.request_id",
      "sandbox.file.path"
    ]
  },
  "errors": {
    "INVALID_INPUT": {
      "status": "INVALID_ARGUMENT",
      "http": 400,
      "next": "Correct the named field; the OpenAPI page at /docs describes each one."
    },
    "INVALID_PATH": {
      "status": "INVALID_ARGUMENT",
      "http": 400,
      "next": "Use a POSIX path of at most 4096 bytes without control characters; see spec/behavior.md, Paths."
    },
    "PATH_LEAVES_ROOT": {
      "status": "PERMISSION_DENIED",
      "http": 403,
      "next": "Name a path inside the sandbox."
    },
    "PATH_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List the directory to see what is there."
    },
    "PATH_EXISTS": {
      "status": "ALREADY_EXISTS",
      "http": 409,
      "next": "Choose another name, or allow overwriting."
    },
    "PATH_DENIED": {
      "status": "PERMISSION_DENIED",
      "http": 403,
      "next": "The file's mode or the sandbox's profile forbids it; see the enforcement report."
    },
    "NOT_A_FILE": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Only regular files can be read and written; stat the path to see what it is."
    },
    "NOT_A_DIRECTORY": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Name a directory; stat the path to see what it is."
    },
    "DIRECTORY_NOT_EMPTY": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Ask for recursive removal."
    },
    "ETAG_MISMATCH": {
      "status": "ABORTED",
      "http": 412,
      "next": "Read the file again and repeat with its new etag."
    },
    "HOSTILE_ARCHIVE": {
      "status": "INVALID_ARGUMENT",
      "http": 400,
      "next": "Make the archive again: whole, and without absolute names, `..`, devices, set-uid bits or links that leave it."
    },
    "TOO_LARGE": {
      "status": "RESOURCE_EXHAUSTED",
      "http": 413,
      "next": "Send less, or use the streaming call."
    },
    "SANDBOX_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List sandboxes with `caisson ls --all`."
    },
    "SANDBOX_ENDED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Create another one; its end reason says why it ended."
    },
    "SANDBOX_FAILED": {
      "status": "INTERNAL",
      "http": 500,
      "next": "Run `caisson doctor`; the event log has the driver's own words."
    },
    "PROCESS_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List the sandbox's processes with `caisson ps BOX`."
    },
    "PROCESS_ENDED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "It has exited; its exit and output can still be read."
    },
    "COMMAND_NOT_FOUND": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Check the program's name and the sandbox's PATH."
    },
    "COMMAND_NOT_EXECUTABLE": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Check the file's mode and format."
    },
    "NO_TERMINAL": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Start the process with a terminal."
    },
    "STDIN_CLOSED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Start the process with its standard input kept open."
    },
    "SESSION_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List sandboxes and sessions with `caisson ls`."
    },
    "SESSION_CONFLICT": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "The session exists with another spec: close it first or use another name."
    },
    "IDEMPOTENCY_CONFLICT": {
      "status": "ALREADY_EXISTS",
      "http": 409,
      "next": "Use a new key for a different request."
    },
    "NOT_ENFORCEABLE": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "`caisson doctor` says what is missing; or do not ask for the named mechanism."
    },
    "NO_DRIVER": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "`caisson doctor` lists the drivers, why each is not usable and what mends it."
    },
    "WORKSPACE_REFUSED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Choose a project directory of its own; see the message for the rule."
    },
    "NO_WORKSPACE": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Give the sandbox a project as an overlay; only then are there changes to see."
    },
    "WORKSPACE_IN_USE": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "End the sandbox first; its changes stay for a day."
    },
    "PORT_CLOSED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Nothing listens on that port in the sandbox; wait for it with `caisson port wait`."
    },
    "PORT_IN_USE": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Name another port of this machine, or none to get a free one."
    },
    "FORWARD_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List forwards with `caisson port ls BOX`."
    },
    "QUEUE_FULL": {
      "status": "RESOURCE_EXHAUSTED",
      "http": 429,
      "next": "End sandboxes that are not needed, or raise the admission bounds in the configuration."
    },
    "RATE_LIMITED": {
      "status": "RESOURCE_EXHAUSTED",
      "http": 429,
      "next": "Wait a moment and repeat."
    },
    "UNAUTHENTICATED": {
      "status": "UNAUTHENTICATED",
      "http": 401,
      "next": "Send a key made by `caisson keys create` as `Authorization: Bearer …`."
    },
    "FORBIDDEN": {
      "status": "PERMISSION_DENIED",
      "http": 403,
      "next": "Use a key with the scope that the message names."
    },
    "FOREIGN_ORIGIN": {
      "status": "PERMISSION_DENIED",
      "http": 403,
      "next": "Add the host or origin to `listen.allowed_hosts` in the configuration."
    },
    "POLICY_FORBIDS": {
      "status": "PERMISSION_DENIED",
      "http": 403,
      "next": "The machine's policy bounds this; `caisson config show` says where."
    },
    "PROJECT_NOT_TRUSTED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Read the project's caisson.yaml, then run `caisson config trust`."
    },
    "CONFIG_INVALID": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Correct the named key; docs/configuration.md lists all of them."
    },
    "APPROVAL_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List approvals with `caisson approvals ls --all`."
    },
    "APPROVAL_DECIDED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "It was answered or expired already; the sandbox has to ask again."
    },
    "APPROVAL_DENIED": {
      "status": "PERMISSION_DENIED",
      "http": 403,
      "next": "Ask somebody who may answer: `caisson approvals` lists what waits."
    },
    "SNAPSHOT_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List snapshots with `caisson snapshot ls`."
    },
    "SNAPSHOT_INVALID": {
      "status": "INVALID_ARGUMENT",
      "http": 400,
      "next": "Export it again with `caisson snapshot export`, one with memory for a host of the same kind; what is wrong is in the message."
    },
    "SANDBOX_PAUSED": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Resume it with `caisson resume`."
    },
    "SECRET_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List secrets with `caisson secret ls`."
    },
    "SECRET_UNAVAILABLE": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Look at where the secret is kept: the variable, file or command that `caisson secret ls` names."
    },
    "KEY_EXISTS": {
      "status": "ALREADY_EXISTS",
      "http": 409,
      "next": "Choose another name, or revoke the key of that name first."
    },
    "KEY_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List keys with `caisson keys ls`."
    },
    "IMAGE_NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "List images with `caisson image ls`; bring one in with `caisson image import`."
    },
    "IMAGE_INVALID": {
      "status": "INVALID_ARGUMENT",
      "http": 400,
      "next": "Export the image again with `docker save` or as an OCI archive; what is wrong with it is in the message."
    },
    "NOT_FOUND": {
      "status": "NOT_FOUND",
      "http": 404,
      "next": "See /docs for the routes there are."
    },
    "METHOD_UNKNOWN": {
      "status": "UNIMPLEMENTED",
      "http": 501,
      "next": "This server is of another version; compare `caisson version`."
    },
    "VERSION_MISMATCH": {
      "status": "FAILED_PRECONDITION",
      "http": 409,
      "next": "Client, daemon and guest are of different builds; restart with `caisson daemon restart`."
    },
    "CANCELLED": {
      "status": "CANCELLED",
      "http": 499,
      "next": "The caller went away."
    },
    "DEADLINE_EXCEEDED": {
      "status": "DEADLINE_EXCEEDED",
      "http": 504,
      "next": "Allow more time, or look at the event log for what it waited for."
    },
    "GUEST_LOST": {
      "status": "UNAVAILABLE",
      "http": 503,
      "next": "The sandbox's guest does not answer; the sandbox will be ended if that lasts."
    },
    "UNAVAILABLE": {
      "status": "UNAVAILABLE",
      "http": 503,
      "next": "Repeat; the daemon is starting, stopping or out of reach."
    },
    "STORAGE_FULL": {
      "status": "RESOURCE_EXHAUSTED",
      "http": 507,
      "next": "Free disk space, for instance with `caisson prune`."
    },
    "STORAGE_FAILED": {
      "status": "UNAVAILABLE",
      "http": 503,
      "next": "The daemon cannot write its log; look at `caisson daemon logs`."
    },
    "CORRUPT_LOG": {
      "status": "DATA_LOSS",
      "http": 500,
      "next": "Stop the daemon and follow docs/recovery.md."
    },
    "INTERNAL": {
      "status": "INTERNAL",
      "http": 500,
      "next": "Report it with the request id; the daemon's log has the details."
    }
  },
  "end_reasons": [
    "deleted",
    "session_closed",
    "idle",
    "max_age",
    "run_finished",
    "guest_lost",
    "guest_died",
    "host_rebooted",
    "start_failed",
    "disk_exceeded",
    "daemon_shutdown"
  ]
} as const;
