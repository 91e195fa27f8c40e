//! The numbers that stand for something: types of tokens, resource types, operation types, and values of tokens.

/// An enum whose variants have numbers on the wire: one row for each, from which both directions are made.
macro_rules! numbered {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $number:ty { $( $(#[$doc:meta])* $value:literal $variant:ident, )* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr($number)]
        pub enum $name {
            $(
                $(#[$doc])*
                #[doc = concat!("Number ", stringify!($value), ".")]
                $variant = $value,
            )*
        }

        impl $name {
            /// Every one there is, in the order of the numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the one with this number.
            pub fn from_number(number: $number) -> Option<Self> {
                match number {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns its number on the wire.
            pub fn number(self) -> $number {
                self as $number
            }

            /// Returns its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.name())
            }
        }
    };
}

numbered! {
    /// The type of a token's value. It gives the length, so that unknown tokens can be skipped.
    pub enum Kind: u8 {
        0x00 Byte,
        0x01 UShort,
        0x02 ULong,
        0x03 Long,
        0x04 ULongLong,
        0x05 LongLong,
        0x06 Guid,
        0x07 SmallString,
        0x08 String,
        0x09 ULongString,
        0x0A SmallBytes,
        0x0B Bytes,
        0x0C ULongBytes,
        0x0D Float,
        0x0E Double,
        0xFF Invalid,
    }
}

numbered! {
    /// What a request is about.
    pub enum ResourceType: u16 {
        /// The connection itself: the context request.
        0x0000 Connection,
        0x0001 Database,
        0x0002 Collection,
        0x0003 Document,
        0x0005 User,
        0x0006 Permission,
        0x0007 StoredProcedure,
        0x0008 Conflict,
        0x0009 Trigger,
        0x000A UserDefinedFunction,
        0x000F Offer,
        0x0014 DatabaseAccount,
        0x0016 PartitionKeyRange,
        0x0020 PartitionKey,
        0x0023 ClientEncryptionKey,
        /// Known to .NET and never seen.
        0x002B TransportControlCommand,
    }
}

numbered! {
    /// What a request does.
    pub enum OperationType: u16 {
        /// The context request.
        0x0000 Connection,
        0x0001 Create,
        0x0002 Patch,
        0x0003 Read,
        0x0004 ReadFeed,
        0x0005 Delete,
        0x0006 Replace,
        0x0008 ExecuteJavaScript,
        /// A query, as older clients call it.
        0x0009 SqlQuery,
        0x000F Query,
        /// A barrier: the LSN numbers of a container's partition.
        0x0011 Head,
        /// A barrier: the LSN numbers of the master partition.
        0x0012 HeadFeed,
        0x0013 Upsert,
        0x0025 Batch,
        0x0042 QueryPlan,
    }
}

numbered! {
    /// The consistency level of a read.
    pub enum ConsistencyLevel: u8 {
        0 Strong,
        1 BoundedStaleness,
        2 Session,
        3 Eventual,
        4 ConsistentPrefix,
    }
}

numbered! {
    /// Whether an item is to be indexed.
    pub enum IndexingDirective: u8 {
        0 Default,
        1 Include,
        2 Exclude,
    }
}

numbered! {
    /// The form of the limits of a read.
    pub enum ReadFeedKeyType: u8 {
        0 Invalid,
        1 ResourceId,
        2 EffectivePartitionKey,
        3 EffectivePartitionKeyRange,
    }
}

numbered! {
    /// A form of items.
    pub enum SerializationFormat: u8 {
        0 JsonText,
        1 CosmosBinary,
        2 HybridRow,
    }
}

numbered! {
    /// Whether the answer to a write has the item.
    pub enum ReturnPreference: u8 {
        0 Representation,
        1 Minimal,
    }
}

numbered! {
    /// Which requests wait for others when there is too much to do.
    pub enum PriorityLevel: u8 {
        1 High,
        2 Low,
    }
}

#[cfg(test)]
mod tests {
    use super::{OperationType, ResourceType};

    #[test]
    fn numbers_come_back_and_unknown_ones_do_not() {
        for resource in ResourceType::ALL {
            assert_eq!(ResourceType::from_number(resource.number()), Some(*resource));
        }
        for operation in OperationType::ALL {
            assert_eq!(OperationType::from_number(operation.number()), Some(*operation));
        }
        assert_eq!(ResourceType::from_number(4), None);
        assert_eq!(OperationType::from_number(7), None);
        assert_eq!(OperationType::Query.to_string(), "Query");
    }
}
