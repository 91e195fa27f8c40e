//! The errors of the language, with MongoDB's codes and messages.

use std::fmt;

/// An error of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The code that drivers and applications check.
    pub code: Code,
    /// The message.
    pub message: String,
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error of that code.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }

    /// `BadValue`: an operand that makes no sense.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(Code::BAD_VALUE, message)
    }

    /// `FailedToParse`: a request that cannot be read.
    pub fn failed_to_parse(message: impl Into<String>) -> Error {
        Error::new(Code::FAILED_TO_PARSE, message)
    }

    /// `TypeMismatch`: a value of the wrong type.
    pub fn type_mismatch(message: impl Into<String>) -> Error {
        Error::new(Code::TYPE_MISMATCH, message)
    }

    /// Returns an error whose code has no name of its own.
    pub fn location(code: i32, message: impl Into<String>) -> Error {
        Error::new(Code(code), message)
    }
}

/// The number of an error on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($constant:ident = $number:literal $name:literal),* $(,)?) => {
        impl Code {
            $(#[doc = concat!("`", $name, "`.")] pub const $constant: Code = Code($number);)*

            fn known(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    INTERNAL_ERROR = 1 "InternalError",
    BAD_VALUE = 2 "BadValue",
    GRAPH_CONTAINS_CYCLE = 5 "GraphContainsCycle",
    HOST_UNREACHABLE = 6 "HostUnreachable",
    HOST_NOT_FOUND = 7 "HostNotFound",
    FAILED_TO_PARSE = 9 "FailedToParse",
    USER_NOT_FOUND = 11 "UserNotFound",
    UNAUTHORIZED = 13 "Unauthorized",
    TYPE_MISMATCH = 14 "TypeMismatch",
    OVERFLOW = 15 "Overflow",
    INVALID_LENGTH = 16 "InvalidLength",
    PROTOCOL_ERROR = 17 "ProtocolError",
    AUTHENTICATION_FAILED = 18 "AuthenticationFailed",
    ILLEGAL_OPERATION = 20 "IllegalOperation",
    INVALID_BSON = 22 "InvalidBSON",
    LOCK_TIMEOUT = 24 "LockTimeout",
    NAMESPACE_NOT_FOUND = 26 "NamespaceNotFound",
    INDEX_NOT_FOUND = 27 "IndexNotFound",
    PATH_NOT_VIABLE = 28 "PathNotViable",
    ROLE_NOT_FOUND = 31 "RoleNotFound",
    CANNOT_BACKFILL_ARRAY = 34 "CannotBackfillArray",
    CONFLICTING_UPDATE_OPERATORS = 40 "ConflictingUpdateOperators",
    CURSOR_NOT_FOUND = 43 "CursorNotFound",
    NO_MATCHING_DOCUMENT = 47 "NoMatchingDocument",
    NAMESPACE_EXISTS = 48 "NamespaceExists",
    MAX_TIME_MS_EXPIRED = 50 "MaxTimeMSExpired",
    DOLLAR_PREFIXED_FIELD_NAME = 52 "DollarPrefixedFieldName",
    INVALID_ID_FIELD = 53 "InvalidIdField",
    NOT_SINGLE_VALUE_FIELD = 54 "NotSingleValueField",
    EMPTY_FIELD_NAME = 56 "EmptyFieldName",
    DOTTED_FIELD_NAME = 57 "DottedFieldName",
    COMMAND_NOT_FOUND = 59 "CommandNotFound",
    SHARD_KEY_NOT_FOUND = 61 "ShardKeyNotFound",
    WRITE_CONCERN_TIMEOUT = 64 "WriteConcernTimeout",
    IMMUTABLE_FIELD = 66 "ImmutableField",
    CANNOT_CREATE_INDEX = 67 "CannotCreateIndex",
    INDEX_ALREADY_EXISTS = 68 "IndexAlreadyExists",
    INVALID_OPTIONS = 72 "InvalidOptions",
    INVALID_NAMESPACE = 73 "InvalidNamespace",
    NO_REPLICATION_ENABLED = 76 "NoReplicationEnabled",
    UNKNOWN_REPL_WRITE_CONCERN = 79 "UnknownReplWriteConcern",
    INDEX_OPTIONS_CONFLICT = 85 "IndexOptionsConflict",
    INDEX_KEY_SPECS_CONFLICT = 86 "IndexKeySpecsConflict",
    NETWORK_TIMEOUT = 89 "NetworkTimeout",
    SHUTDOWN_IN_PROGRESS = 91 "ShutdownInProgress",
    FAIL_POINT_SET_FAILED = 94 "FailPointSetFailed",
    OPERATION_FAILED = 96 "OperationFailed",
    UNSATISFIABLE_WRITE_CONCERN = 100 "UnsatisfiableWriteConcern",
    WRITE_CONFLICT = 112 "WriteConflict",
    COMMAND_NOT_SUPPORTED = 115 "CommandNotSupported",
    DOCUMENT_VALIDATION_FAILURE = 121 "DocumentValidationFailure",
    FAILED_TO_SATISFY_READ_PREFERENCE = 133 "FailedToSatisfyReadPreference",
    EXCEEDED_MEMORY_LIMIT = 146 "ExceededMemoryLimit",
    STALE_EPOCH = 150 "StaleEpoch",
    READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET = 134 "ReadConcernMajorityNotAvailableYet",
    VIEW_DEPTH_LIMIT_EXCEEDED = 165 "ViewDepthLimitExceeded",
    COMMAND_NOT_SUPPORTED_ON_VIEW = 166 "CommandNotSupportedOnView",
    OPTION_NOT_SUPPORTED_ON_VIEW = 167 "OptionNotSupportedOnView",
    CANNOT_INDEX_PARALLEL_ARRAYS = 171 "CannotIndexParallelArrays",
    QUERY_PLAN_KILLED = 175 "QueryPlanKilled",
    AMBIGUOUS_INDEX_KEY_PATTERN = 181 "AmbiguousIndexKeyPattern",
    CLIENT_METADATA_APP_NAME_TOO_LARGE = 184 "ClientMetadataAppNameTooLarge",
    CLIENT_METADATA_DOCUMENT_TOO_LARGE = 185 "ClientMetadataDocumentTooLarge",
    PRIMARY_STEPPED_DOWN = 189 "PrimarySteppedDown",
    INVALID_INDEX_SPECIFICATION_OPTION = 197 "InvalidIndexSpecificationOption",
    CANNOT_BUILD_INDEX_KEYS = 201 "CannotBuildIndexKeys",
    INCOMPLETE_TRANSACTION_HISTORY = 217 "IncompleteTransactionHistory",
    ILLEGAL_OP_MSG_FLAG = 223 "IllegalOpMsgFlag",
    TRANSACTION_TOO_OLD = 225 "TransactionTooOld",
    MAX_SUB_PIPELINE_DEPTH_EXCEEDED = 232 "MaxSubPipelineDepthExceeded",
    RETRY_CHANGE_STREAM = 234 "RetryChangeStream",
    CONVERSION_FAILURE = 241 "ConversionFailure",
    SNAPSHOT_UNAVAILABLE = 246 "SnapshotUnavailable",
    NO_SUCH_TRANSACTION = 251 "NoSuchTransaction",
    TRANSACTION_COMMITTED = 256 "TransactionCommitted",
    INVALID_RESUME_TOKEN = 260 "InvalidResumeToken",
    TOO_MANY_LOGICAL_SESSIONS = 261 "TooManyLogicalSessions",
    EXCEEDED_TIME_LIMIT = 262 "ExceededTimeLimit",
    OPERATION_NOT_SUPPORTED_IN_TRANSACTION = 263 "OperationNotSupportedInTransaction",
    PREPARED_TRANSACTION_IN_PROGRESS = 267 "PreparedTransactionInProgress",
    CHANGE_STREAM_FATAL_ERROR = 280 "ChangeStreamFatalError",
    CHANGE_STREAM_HISTORY_LOST = 286 "ChangeStreamHistoryLost",
    TRANSACTION_EXCEEDED_LIFETIME = 290 "TransactionExceededLifetimeLimitSeconds",
    NO_QUERY_EXECUTION_PLANS = 291 "NoQueryExecutionPlans",
    QUERY_EXCEEDED_MEMORY_LIMIT = 292 "QueryExceededMemoryLimitNoDiskUseAllowed",
    API_VERSION_ERROR = 322 "APIVersionError",
    API_STRICT_ERROR = 323 "APIStrictError",
    MECHANISM_UNAVAILABLE = 334 "MechanismUnavailable",
    UNSUPPORTED_OP_QUERY_COMMAND = 352 "UnsupportedOpQueryCommand",
    SOCKET_EXCEPTION = 9001 "SocketException",
    NOT_WRITABLE_PRIMARY = 10107 "NotWritablePrimary",
    BSON_OBJECT_TOO_LARGE = 10334 "BSONObjectTooLarge",
    DUPLICATE_KEY = 11000 "DuplicateKey",
    INTERRUPTED_AT_SHUTDOWN = 11600 "InterruptedAtShutdown",
    INTERRUPTED = 11601 "Interrupted",
    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE = 11602 "InterruptedDueToReplStateChange",
    DATABASE_DIFFER_CASE = 13297 "DatabaseDifferCase",
    NOT_PRIMARY_NO_SECONDARY_OK = 13435 "NotPrimaryNoSecondaryOk",
    NOT_PRIMARY_OR_SECONDARY = 13436 "NotPrimaryOrSecondary",
    OUT_OF_DISK_SPACE = 14031 "OutOfDiskSpace",
    TOO_MANY_REQUESTS = 16500 "TooManyRequests",
}

impl Code {
    /// Returns the name that stands beside the number in replies.
    pub fn name(self) -> String {
        self.known().map_or_else(|| format!("Location{}", self.0), str::to_owned)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.name(), self.0)
    }
}
